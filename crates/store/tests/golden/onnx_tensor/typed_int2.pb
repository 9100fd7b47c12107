*ÆB
typed/int2