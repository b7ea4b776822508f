"""header.py - a text in C that compiles where every structure and every number of the package is that of vwn.h."""
import ctypes

from vwn import _library as library

print("#include <stddef.h>\n#include <vwn.h>")
for name, structure in library.STRUCTURES.items():
    print(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(structure)}, "{name}");')
    for field in structure._fields_:
        place = getattr(structure, field[0])
        print(f'_Static_assert(offsetof({name}, {field[0]}) == {place.offset} && '
              f'sizeof((({name} *)0)->{field[0]}) == {place.size}, "{name}.{field[0]}");')
for name, value in library.NUMBERS.items():
    print(f'_Static_assert({name} == {value}, "{name}");')
