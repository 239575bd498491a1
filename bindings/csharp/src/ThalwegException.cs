using System;
using static Thalweg.Low;

namespace Thalweg
{
    /// <summary>What a caller can do about a failure; types.h describes each code.</summary>
    public enum Code
    {
        Ok, Cancelled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted, FailedPrecondition,
        Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated
    }

    /// <summary>A failure of the library. <see cref="Code"/> tells failures apart, as in <c>catch (ThalwegException e) when (e.Code ==
    /// Code.NotFound)</c>.</summary>
    public class ThalwegException : Exception
    {
        internal ThalwegException(Code code, string message, string operation = null, string place = null) : base(message)
        {
            Code = code;
            Operation = operation;
            Place = place;
        }

        public Code Code { get; }

        /// <summary>The name of the operation that failed; null if there is none.</summary>
        public string Operation { get; }

        /// <summary>The line of the program that made the operation, such as "Train.cs:18"; null if unknown.</summary>
        public string Place { get; }

        internal static ThalwegException Invalid(string message)
        {
            return new InvalidArgumentException(message);
        }

        internal static ThalwegException Failed(string message)
        {
            return new FailedPreconditionException(message);
        }

        /// <summary>Throws the failure of a status, which it releases; zero is success.</summary>
        internal static void Check(IntPtr status)
        {
            if (status != IntPtr.Zero) throw Of(status);
        }

        internal static unsafe ThalwegException Of(IntPtr status)
        {
            uint number = tw_status_code(status);
            Code code = number <= (uint)Code.Unauthenticated ? (Code)number : Code.Unknown;
            string message = Memory.String(tw_status_message(status)), operation = Memory.String(tw_status_operation(status));
            string place = Memory.String(tw_status_place(status));
            tw_status_release(status);
            switch (code)
            {
                case Code.Cancelled: return new CancelledException(message, operation, place);
                case Code.InvalidArgument: return new InvalidArgumentException(message, operation, place);
                case Code.DeadlineExceeded: return new DeadlineExceededException(message, operation, place);
                case Code.NotFound: return new NotFoundException(message, operation, place);
                case Code.FailedPrecondition: return new FailedPreconditionException(message, operation, place);
                default: return new ThalwegException(code, message, operation, place);
            }
        }
    }

    /// <summary>The run was cancelled by the program or because its session was closed.</summary>
    public sealed class CancelledException : ThalwegException
    {
        internal CancelledException(string message, string operation = null, string place = null) : base(Code.Cancelled, message, operation, place) {}
    }

    /// <summary>A value, a name or an option is wrong.</summary>
    public sealed class InvalidArgumentException : ThalwegException
    {
        internal InvalidArgumentException(string message, string operation = null, string place = null) : base(Code.InvalidArgument, message, operation, place) {}
    }

    /// <summary>The run took longer than its timeout.</summary>
    public sealed class DeadlineExceededException : ThalwegException
    {
        internal DeadlineExceededException(string message, string operation = null, string place = null) : base(Code.DeadlineExceeded, message, operation, place) {}
    }

    /// <summary>There is nothing of that name.</summary>
    public sealed class NotFoundException : ThalwegException
    {
        internal NotFoundException(string message, string operation = null, string place = null) : base(Code.NotFound, message, operation, place) {}
    }

    /// <summary>The object is closed, or not in the state that the call needs.</summary>
    public sealed class FailedPreconditionException : ThalwegException
    {
        internal FailedPreconditionException(string message, string operation = null, string place = null) : base(Code.FailedPrecondition, message, operation, place) {}
    }
}
