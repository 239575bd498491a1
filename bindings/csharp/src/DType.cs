namespace Thalweg
{
    /// <summary>Element types, with their numbers in the C API; a tensor may have another number, of a type without a name here.</summary>
    public enum DType : uint
    {
        None = 0, Float = Low.TW_FLOAT, Double = Low.TW_DOUBLE, Int32 = Low.TW_INT32, UInt8 = Low.TW_UINT8, Int16 = Low.TW_INT16, Int8 = Low.TW_INT8,
        String = Low.TW_STRING, Complex64 = Low.TW_COMPLEX64, Int64 = Low.TW_INT64, Bool = Low.TW_BOOL, BFloat16 = Low.TW_BFLOAT16,
        UInt16 = Low.TW_UINT16, Complex128 = Low.TW_COMPLEX128, Half = Low.TW_HALF, Resource = Low.TW_RESOURCE, Variant = Low.TW_VARIANT,
        UInt32 = Low.TW_UINT32, UInt64 = Low.TW_UINT64
    }
}
