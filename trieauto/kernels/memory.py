"""Arrays at an address: how one kernel call reaches the arrays of many constraints.

numba unboxes every array that is passed, which costs more than a mask does, and cannot take a list of constraints.
So Python passes addresses, and kernels see them as arrays of a known length again (checked under
``NUMBA_BOUNDSCHECK=1``). Whoever passes an address keeps the array alive during the call.
"""

from __future__ import annotations

from typing import Any

from numba import carray, types
from numba.extending import intrinsic

from .jit import helper


def _pointer_to(element: Any) -> Any:
    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


_uint8 = _pointer_to(types.uint8)
_int16 = _pointer_to(types.int16)
_int32 = _pointer_to(types.int32)
_int64 = _pointer_to(types.int64)


@helper
def uint8_at(address, length):
    return carray(_uint8(address), (length,))


@helper
def int16_at(address, length):
    return carray(_int16(address), (length,))


@helper
def int32_at(address, length):
    return carray(_int32(address), (length,))


@helper
def int64_at(address, length):
    return carray(_int64(address), (length,))
