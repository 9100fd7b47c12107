*
Btyped/uint16