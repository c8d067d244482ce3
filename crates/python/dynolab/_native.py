"""Calls the native library through ctypes, and wraps streams into Arrow's PyCapsule interface."""

import ctypes
import pathlib

_CAPSULE = b"arrow_array_stream"

_library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libdyno_python.so")))
_library.dynolab_tpch_stream.restype = ctypes.c_void_p
_library.dynolab_tpch_stream.argtypes = [
    ctypes.c_char_p,
    ctypes.c_double,
    ctypes.POINTER(ctypes.c_void_p),
]
_library.dynolab_free_stream.argtypes = [ctypes.c_void_p]
_library.dynolab_free_text.argtypes = [ctypes.c_void_p]

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# The destructor gets the capsule while it is being destroyed: as a number, because taking a
# reference to the object would bring it back to life.
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule):
    _library.dynolab_free_stream(_pointer(capsule, _CAPSULE))


def tpch_stream(table, scale_factor):
    """Returns a capsule with the stream of a table.

    Raises ValueError when there is no such table or scale factor.
    """
    error = ctypes.c_void_p()
    stream = _library.dynolab_tpch_stream(table.encode(), scale_factor, ctypes.byref(error))
    if not stream:
        reason = ctypes.string_at(error.value).decode()
        _library.dynolab_free_text(error)
        raise ValueError(reason)
    return _new(stream, _CAPSULE, ctypes.cast(_destroy, ctypes.c_void_p))
