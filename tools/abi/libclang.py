"""The part of libclang that headers.py needs. It uses ctypes, because Debian's own bindings depend on 200 MB of static libraries.

The library is that of clang-15, which tools/setup installs, or another version; all versions agree on the calls that are made here."""
import ctypes
import functools
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_longlong, c_uint, c_void_p

VERSIONS = (15, 14, 16, 17, 18, 19)


class Missing(Exception):
    """This machine has no libclang."""


class _String(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("flags", c_uint)]


class _Cursor(ctypes.Structure):
    _fields_ = [("kind", c_int), ("xdata", c_int), ("data", c_void_p * 3)]


class _Type(ctypes.Structure):
    _fields_ = [("kind", c_int), ("data", c_void_p * 2)]


class _Location(ctypes.Structure):
    _fields_ = [("data", c_void_p * 2), ("offset", c_uint)]


class _Range(ctypes.Structure):
    _fields_ = [("data", c_void_p * 2), ("begin", c_uint), ("end", c_uint)]


_VISITOR = CFUNCTYPE(c_int, _Cursor, _Cursor, c_void_p)
_FUNCTIONS = {
    "clang_createIndex": (c_void_p, c_int, c_int),
    "clang_parseTranslationUnit": (c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_uint, c_uint),
    "clang_getNumDiagnostics": (c_uint, c_void_p),
    "clang_getDiagnostic": (c_void_p, c_void_p, c_uint),
    "clang_getDiagnosticSeverity": (c_uint, c_void_p),
    "clang_formatDiagnostic": (_String, c_void_p, c_uint),
    "clang_getTranslationUnitCursor": (_Cursor, c_void_p),
    "clang_visitChildren": (c_uint, _Cursor, _VISITOR, c_void_p),
    "clang_getCursorSpelling": (_String, _Cursor),
    "clang_getCursorKindSpelling": (_String, c_int),
    "clang_getCursorType": (_Type, _Cursor),
    "clang_isCursorDefinition": (c_uint, _Cursor),
    "clang_Cursor_isFunctionInlined": (c_uint, _Cursor),
    "clang_Cursor_getOffsetOfField": (c_longlong, _Cursor),
    "clang_Cursor_isBitField": (c_uint, _Cursor),
    "clang_getEnumConstantDeclValue": (c_longlong, _Cursor),
    "clang_getTypedefDeclUnderlyingType": (_Type, _Cursor),
    "clang_getTypeSpelling": (_String, _Type),
    "clang_getTypeKindSpelling": (_String, c_int),
    "clang_getCanonicalType": (_Type, _Type),
    "clang_getPointeeType": (_Type, _Type),
    "clang_getResultType": (_Type, _Type),
    "clang_getTypeDeclaration": (_Cursor, _Type),
    "clang_Type_getSizeOf": (c_longlong, _Type),
    "clang_Type_getAlignOf": (c_longlong, _Type),
    "clang_isFunctionTypeVariadic": (c_uint, _Type),
    "clang_getCursorExtent": (_Range, _Cursor),
    "clang_getRangeStart": (_Location, _Range),
    "clang_getRangeEnd": (_Location, _Range),
    "clang_getExpansionLocation": (None, _Location, POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)),
    "clang_getFileName": (_String, c_void_p),
    "clang_getCString": (c_char_p, _String),
    "clang_disposeString": (None, _String),
}


def _load():
    for version in VERSIONS:
        try:
            library = ctypes.CDLL(f"libclang-{version}.so.1")
        except OSError:
            continue
        for name, (result, *parameters) in _FUNCTIONS.items():
            getattr(library, name).restype = result
            getattr(library, name).argtypes = parameters
        return library
    raise Missing("no libclang on this machine: tools/setup installs clang-15, which brings it")


class Type:
    def __init__(self, clang, raw):
        self._clang, self._raw = clang, raw

    @property
    def kind(self):
        return self._clang.text(self._clang.lib.clang_getTypeKindSpelling(self._raw.kind))

    @property
    def spelling(self):
        return self._clang.text(self._clang.lib.clang_getTypeSpelling(self._raw))

    @property
    def size(self):
        return self._clang.lib.clang_Type_getSizeOf(self._raw)

    @property
    def align(self):
        return self._clang.lib.clang_Type_getAlignOf(self._raw)

    @property
    def variadic(self):
        return bool(self._clang.lib.clang_isFunctionTypeVariadic(self._raw))

    def _other(self, function):
        return Type(self._clang, getattr(self._clang.lib, function)(self._raw))

    @property
    def canonical(self):
        return self._other("clang_getCanonicalType")

    @property
    def pointee(self):
        return self._other("clang_getPointeeType")

    @property
    def result(self):
        return self._other("clang_getResultType")

    @property
    def declaration(self):
        return Cursor(self._clang, self._clang.lib.clang_getTypeDeclaration(self._raw))


class Cursor:
    def __init__(self, clang, raw):
        self._clang, self._raw = clang, raw

    @property
    def kind(self):
        return self._clang.text(self._clang.lib.clang_getCursorKindSpelling(self._raw.kind))

    @property
    def name(self):
        return self._clang.text(self._clang.lib.clang_getCursorSpelling(self._raw))

    @property
    def type(self):
        return Type(self._clang, self._clang.lib.clang_getCursorType(self._raw))

    @property
    def underlying(self):
        """The type that a typedef names."""
        return Type(self._clang, self._clang.lib.clang_getTypedefDeclUnderlyingType(self._raw))

    @property
    def is_definition(self):
        return bool(self._clang.lib.clang_isCursorDefinition(self._raw))

    @property
    def is_inline(self):
        return bool(self._clang.lib.clang_Cursor_isFunctionInlined(self._raw))

    @property
    def bit_offset(self):
        return self._clang.lib.clang_Cursor_getOffsetOfField(self._raw)

    @property
    def is_bit_field(self):
        return bool(self._clang.lib.clang_Cursor_isBitField(self._raw))

    @property
    def value(self):
        return self._clang.lib.clang_getEnumConstantDeclValue(self._raw)

    @functools.cached_property
    def extent(self):
        """(file, offset of the first byte, first line, last line); a macro counts where it is expanded."""
        lib, extent = self._clang.lib, self._clang.lib.clang_getCursorExtent(self._raw)
        file, first, last, column, begin, end = c_void_p(), c_uint(), c_uint(), c_uint(), c_uint(), c_uint()
        lib.clang_getExpansionLocation(lib.clang_getRangeStart(extent), byref(file), byref(first), byref(column), byref(begin))
        lib.clang_getExpansionLocation(lib.clang_getRangeEnd(extent), byref(file), byref(last), byref(column), byref(end))
        name = self._clang.text(lib.clang_getFileName(file)) if file else ""
        return name, begin.value, first.value, last.value

    @property
    def where(self):
        file, _, first, _ = self.extent
        return f"{file}:{first}"

    def children(self, kind=None):
        found = []

        def visit(cursor, _parent, _data):
            found.append(Cursor(self._clang, cursor))
            return 1  # CXChildVisit_Continue: goes on with the next child of the same parent

        self._clang.lib.clang_visitChildren(self._raw, _VISITOR(visit), None)
        return [c for c in found if kind is None or c.kind == kind]


class Clang:
    """One parsed file. Raises ValueError with the compiler's message if it does not compile."""

    def __init__(self, path, arguments):
        self.lib = _load()
        words = [a.encode() for a in arguments]
        unit = self.lib.clang_parseTranslationUnit(self.lib.clang_createIndex(0, 0), str(path).encode(),
                                                   (c_char_p * len(words))(*words), len(words), None, 0, 0)
        if not unit:
            raise ValueError(f"libclang cannot read {path}")
        errors = []
        for i in range(self.lib.clang_getNumDiagnostics(unit)):
            diagnostic = self.lib.clang_getDiagnostic(unit, i)
            if self.lib.clang_getDiagnosticSeverity(diagnostic) >= 3:
                errors.append(self.text(self.lib.clang_formatDiagnostic(diagnostic, 1)))
        if errors:
            raise ValueError("\n".join(errors))
        self.root = Cursor(self, self.lib.clang_getTranslationUnitCursor(unit))

    def text(self, string):
        words = self.lib.clang_getCString(string)
        self.lib.clang_disposeString(string)
        return (words or b"").decode()
