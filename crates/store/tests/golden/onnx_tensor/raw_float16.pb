
Braw/float16J¡∆¿»	√VDK¿