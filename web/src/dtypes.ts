/** The largest finite value of each element type. */

const ENDS: Record<string, number> = {
  float16: 65504,
  bfloat16: 3.3895313892515355e38,
  float32: 3.4028234663852886e38,
  float64: Number.MAX_VALUE,
  float8_e4m3fn: 448,
  float8_e5m2: 57344,
  int8: 127,
  uint8: 255,
  int16: 32767,
  uint16: 65535,
  int32: 2147483647,
  uint32: 4294967295,
};

export function dtypeEnd(dtype: string | null): number | null {
  return dtype === null ? null : (ENDS[dtype] ?? null);
}
