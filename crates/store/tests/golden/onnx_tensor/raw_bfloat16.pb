Braw/bfloat16J
AÊø`>_Aù@í¿