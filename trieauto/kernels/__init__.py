"""Every hot loop of the library, numba-jitted over plain arrays."""
