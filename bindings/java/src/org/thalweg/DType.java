package org.thalweg;

/** Element types, with their numbers in the C API. */
public enum DType {
    FLOAT(Low.TW_FLOAT), DOUBLE(Low.TW_DOUBLE), INT32(Low.TW_INT32), UINT8(Low.TW_UINT8), INT16(Low.TW_INT16), INT8(Low.TW_INT8),
    STRING(Low.TW_STRING), COMPLEX64(Low.TW_COMPLEX64), INT64(Low.TW_INT64), BOOL(Low.TW_BOOL), BFLOAT16(Low.TW_BFLOAT16),
    UINT16(Low.TW_UINT16), COMPLEX128(Low.TW_COMPLEX128), HALF(Low.TW_HALF), RESOURCE(Low.TW_RESOURCE), VARIANT(Low.TW_VARIANT),
    UINT32(Low.TW_UINT32), UINT64(Low.TW_UINT64), OTHER(0);

    final int number;

    DType(int number) {
        this.number = number;
    }

    static DType of(int number) {
        for (DType d : values()) if (d.number == number) return d;
        return OTHER;
    }
}
