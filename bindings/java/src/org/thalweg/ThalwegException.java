package org.thalweg;

/** A failure of the library. Each code has a class of its own. */
public class ThalwegException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What a caller can do about a failure; types.h describes each. */
    public enum Code {
        OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED,
        FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED
    }

    private final Code code;
    private final String operation;
    private final String place;

    ThalwegException(Code code, String message, String operation, String place, Throwable cause) {
        super(message, cause);
        this.code = code;
        this.operation = operation;
        this.place = place;
    }

    public Code code() {
        return code;
    }

    /** The name of the operation that failed; null if there is none. */
    public String operation() {
        return operation;
    }

    /** The line of the program that made the operation, such as "Train.java:18"; null if unknown. */
    public String place() {
        return place;
    }

    static ThalwegException invalid(String message) {
        return new InvalidArgument(message, null, null);
    }

    static ThalwegException closed(String what) {
        return new FailedPrecondition("the " + what + " is closed", null, null);
    }

    /** Throws the failure of a status, which it releases; 0 is success. */
    static void check(long status) {
        if (status != 0) throw of(status);
    }

    static ThalwegException of(long status) {
        int number = Low.tw_status_code(status);
        Code code = number < Code.values().length ? Code.values()[number] : Code.UNKNOWN;
        String message = Memory.string(Low.tw_status_message(status));
        String operation = Memory.string(Low.tw_status_operation(status)), place = Memory.string(Low.tw_status_place(status));
        Low.tw_status_release(status);
        switch (code) {
            case CANCELLED: return new Cancelled(message, operation, place);
            case INVALID_ARGUMENT: return new InvalidArgument(message, operation, place);
            case DEADLINE_EXCEEDED: return new DeadlineExceeded(message, operation, place);
            case NOT_FOUND: return new NotFound(message, operation, place);
            case ALREADY_EXISTS: return new AlreadyExists(message, operation, place);
            case PERMISSION_DENIED: return new PermissionDenied(message, operation, place);
            case RESOURCE_EXHAUSTED: return new ResourceExhausted(message, operation, place);
            case FAILED_PRECONDITION: return new FailedPrecondition(message, operation, place);
            case ABORTED: return new Aborted(message, operation, place);
            case OUT_OF_RANGE: return new OutOfRange(message, operation, place);
            case UNIMPLEMENTED: return new Unimplemented(message, operation, place);
            case INTERNAL: return new Internal(message, operation, place);
            case UNAVAILABLE: return new Unavailable(message, operation, place);
            case DATA_LOSS: return new DataLoss(message, operation, place);
            case UNAUTHENTICATED: return new Unauthenticated(message, operation, place);
            default: return new ThalwegException(Code.UNKNOWN, message, operation, place, null);
        }
    }

    /** CANCELLED. */
    public static final class Cancelled extends ThalwegException {
        private static final long serialVersionUID = 1;

        Cancelled(String message, String operation, String place) {
            super(Code.CANCELLED, message, operation, place, null);
        }
    }

    /** INVALID_ARGUMENT. */
    public static final class InvalidArgument extends ThalwegException {
        private static final long serialVersionUID = 1;

        InvalidArgument(String message, String operation, String place) {
            super(Code.INVALID_ARGUMENT, message, operation, place, null);
        }
    }

    /** DEADLINE_EXCEEDED. */
    public static final class DeadlineExceeded extends ThalwegException {
        private static final long serialVersionUID = 1;

        DeadlineExceeded(String message, String operation, String place) {
            super(Code.DEADLINE_EXCEEDED, message, operation, place, null);
        }
    }

    /** NOT_FOUND. */
    public static final class NotFound extends ThalwegException {
        private static final long serialVersionUID = 1;

        NotFound(String message, String operation, String place) {
            super(Code.NOT_FOUND, message, operation, place, null);
        }
    }

    /** ALREADY_EXISTS. */
    public static final class AlreadyExists extends ThalwegException {
        private static final long serialVersionUID = 1;

        AlreadyExists(String message, String operation, String place) {
            super(Code.ALREADY_EXISTS, message, operation, place, null);
        }
    }

    /** PERMISSION_DENIED. */
    public static final class PermissionDenied extends ThalwegException {
        private static final long serialVersionUID = 1;

        PermissionDenied(String message, String operation, String place) {
            super(Code.PERMISSION_DENIED, message, operation, place, null);
        }
    }

    /** RESOURCE_EXHAUSTED. */
    public static final class ResourceExhausted extends ThalwegException {
        private static final long serialVersionUID = 1;

        ResourceExhausted(String message, String operation, String place) {
            super(Code.RESOURCE_EXHAUSTED, message, operation, place, null);
        }
    }

    /** FAILED_PRECONDITION. */
    public static final class FailedPrecondition extends ThalwegException {
        private static final long serialVersionUID = 1;

        FailedPrecondition(String message, String operation, String place) {
            super(Code.FAILED_PRECONDITION, message, operation, place, null);
        }
    }

    /** ABORTED. */
    public static final class Aborted extends ThalwegException {
        private static final long serialVersionUID = 1;

        Aborted(String message, String operation, String place) {
            super(Code.ABORTED, message, operation, place, null);
        }
    }

    /** OUT_OF_RANGE. */
    public static final class OutOfRange extends ThalwegException {
        private static final long serialVersionUID = 1;

        OutOfRange(String message, String operation, String place) {
            super(Code.OUT_OF_RANGE, message, operation, place, null);
        }
    }

    /** UNIMPLEMENTED. */
    public static final class Unimplemented extends ThalwegException {
        private static final long serialVersionUID = 1;

        Unimplemented(String message, String operation, String place) {
            super(Code.UNIMPLEMENTED, message, operation, place, null);
        }
    }

    /** INTERNAL. */
    public static final class Internal extends ThalwegException {
        private static final long serialVersionUID = 1;

        Internal(String message, String operation, String place) {
            super(Code.INTERNAL, message, operation, place, null);
        }
    }

    /** UNAVAILABLE. */
    public static final class Unavailable extends ThalwegException {
        private static final long serialVersionUID = 1;

        Unavailable(String message, String operation, String place) {
            super(Code.UNAVAILABLE, message, operation, place, null);
        }
    }

    /** DATA_LOSS. */
    public static final class DataLoss extends ThalwegException {
        private static final long serialVersionUID = 1;

        DataLoss(String message, String operation, String place) {
            super(Code.DATA_LOSS, message, operation, place, null);
        }
    }

    /** UNAUTHENTICATED. */
    public static final class Unauthenticated extends ThalwegException {
        private static final long serialVersionUID = 1;

        Unauthenticated(String message, String operation, String place) {
            super(Code.UNAUTHENTICATED, message, operation, place, null);
        }
    }
}
