*xñB
typed/int4