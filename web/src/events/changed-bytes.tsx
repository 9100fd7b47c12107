/** The bytes and elements of an overwritten value, before and after. */

import type { EventDetail } from "../api";
import { visible } from "../names";
import { formatCount, formatNumber } from "../numbers";
import { t } from "../texts";

/** Bytes per line. */
const N_OF_LINE = 8;

export function ChangedBytes({ bytes }: { bytes: EventDetail["bytes"] }) {
  if (bytes === null) {
    return (
      <section class="part">
        <p class="dim">{t.no_bytes}</p>
      </section>
    );
  }
  return (
    <>
      <section class="part">
        <h3>
          <span>{t.bytes_title}</span>
        </h3>
        <table class="numbers byte-table">
          <BeforeAndAfter />
          <tbody>
            {bytes.ranges.map((range) =>
              linesOf(range).map((line) => (
                <tr key={line.start}>
                  <th scope="row">{formatCount(line.start)}</th>
                  <td>
                    <Line digits={line.before} other={line.after} />
                  </td>
                  <td>
                    <Line digits={line.after} other={line.before} />
                  </td>
                </tr>
              )),
            )}
          </tbody>
        </table>
        <More ranges={bytes.ranges} />
      </section>
      {bytes.elements.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.elements_title}</span>
            <span>{visible(bytes.dtype)}</span>
          </h3>
          <table class="numbers">
            <BeforeAndAfter />
            <tbody>
              {bytes.elements.map(({ index, before, after }) => (
                <tr key={index}>
                  <th scope="row">[{index}]</th>
                  <td>{elementText(before)}</td>
                  <td class="differs">{elementText(after)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

function elementText(value: number | string | null): string {
  if (typeof value === "number") {
    return shortest(value).replace("e+", "e").replace(/-/g, "−");
  }
  return value === "nan" || value === "inf" || value === "-inf" || value === null
    ? formatNumber(value)
    : visible(value);
}

/** The fewest digits that identify a float32; JavaScript's for a float64. */
function shortest(value: number): string {
  if (Math.fround(value) === value) {
    for (let digits = 1; digits <= 9; digits += 1) {
      const rounded = Number(value.toPrecision(digits));
      if (Math.fround(rounded) === value) return String(rounded);
    }
  }
  return String(value);
}

type ByteRange = NonNullable<EventDetail["bytes"]>["ranges"][number];

function linesOf({ start, before, after }: ByteRange) {
  const lines = [];
  for (let at = 0; at < before.length; at += 2 * N_OF_LINE) {
    lines.push({
      start: start + at / 2,
      before: before.slice(at, at + 2 * N_OF_LINE),
      after: after.slice(at, at + 2 * N_OF_LINE),
    });
  }
  return lines;
}

/** Pairs of digits; those that differ from the other side are emphasised. */
function Line({ digits, other }: { digits: string; other: string }) {
  const pairs = digits.match(/../g) ?? [];
  return (
    <code>
      {pairs.map((pair, i) => (
        <span key={i} class={pair === other.slice(2 * i, 2 * i + 2) ? "same" : "differs"}>
          {pair}
          {i + 1 < pairs.length ? " " : ""}
        </span>
      ))}
    </code>
  );
}

function More({ ranges }: { ranges: ByteRange[] }) {
  const n = ranges.reduce((sum, r) => sum + (r.end - r.start - r.before.length / 2), 0);
  return n > 0 ? <p class="dim">{t.n_more_bytes(n)}</p> : null;
}

function BeforeAndAfter() {
  return (
    <thead>
      <tr>
        <th scope="col">{t.index}</th>
        <th scope="col">{t.before}</th>
        <th scope="col">{t.after}</th>
      </tr>
    </thead>
  );
}
