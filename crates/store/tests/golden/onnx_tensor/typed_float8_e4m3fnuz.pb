*
ÓÌHRÛàBtyped/float8_e4m3fnuz