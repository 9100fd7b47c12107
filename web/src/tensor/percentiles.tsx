/** Percentiles: a dot for the target on a gold dot, on one axis. */

import type { Percentile } from "../api";
import { formatNumber, plainNumber, toFloat } from "../numbers";
import { t } from "../texts";

export function Percentiles({ percentiles }: { percentiles: Percentile[] }) {
  const values = percentiles
    .flatMap((p) => [toFloat(p.target), toFloat(p.golden)])
    .filter((x): x is number => x !== null && Number.isFinite(x));
  if (values.length === 0) return null;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const at = (x: number) => `${5 + (90 * (x - low)) / (high - low || 1)}%`;
  const has_golden = percentiles.some((p) => p.golden !== null);
  return (
    <table class="numbers ladder">
      <thead>
        <tr>
          <th scope="col">{t.percentiles}</th>
        </tr>
      </thead>
      <tbody>
        {percentiles.map((p) => (
          <tr key={p.p}>
            <th scope="row">{p.p === 0 ? "min" : p.p === 100 ? "max" : `${p.p} %`}</th>
            <td title={plainNumber(p.target)}>{formatNumber(p.target)}</td>
            {has_golden && <td title={plainNumber(p.golden)}>{formatNumber(p.golden)}</td>}
            <td class="rung">
              <Rung percentile={p} at={at} has_zero={low < 0 && high > 0} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface RungProps {
  percentile: Percentile;
  at: (x: number) => string;
  has_zero: boolean;
}

function Rung({ percentile, at, has_zero }: RungProps) {
  const target = toFloat(percentile.target);
  const golden = toFloat(percentile.golden);
  const is_drawn = (x: number | null): x is number => x !== null && Number.isFinite(x);
  return (
    <svg width="100%" height="22" aria-hidden="true">
      <line class="axis-line" x1="0" x2="100%" y1="11" y2="11" />
      {has_zero && <line class="zero-line" x1={at(0)} x2={at(0)} y1="5" y2="17" />}
      {is_drawn(golden) && <circle class="golden-dot" cx={at(golden)} cy="11" r="4.5" />}
      {is_drawn(target) && <circle class="target-dot" cx={at(target)} cy="11" r="2.5" />}
    </svg>
  );
}
