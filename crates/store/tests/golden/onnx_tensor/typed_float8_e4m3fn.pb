*
EÌÎÎTÕBtyped/float8_e4m3fn