/** Match counts of both sides' operators. */

import type { PairCounts as Counts } from "../api";
import { formatCount } from "../numbers";
import { t } from "../texts";

export function PairCounts({ counts, n_new }: { counts: Counts; n_new: number }) {
  const rows: [string, number][] = [
    [t.pairs.same_name, counts.same_name],
    [t.pairs.fused, counts.fused],
    [t.pairs.other, counts.other],
    [t.pairs.target_only, counts.target_only],
    [t.pairs.golden_only, counts.golden_only],
    [t.pairs.inside_fusion, counts.inside_fusion],
    [t.pairs.by_hand, counts.by_hand],
  ];
  // Zero counts are hidden, except for those that users look for.
  const is_optional = (words: string) => words === t.pairs.other || words === t.pairs.golden_only;
  return (
    <section class="pair-counts" aria-label={t.pairs.title}>
      <h3>{t.pairs.title}</h3>
      <table>
        <tbody>
          {rows
            .filter(([words, n]) => n > 0 || !is_optional(words))
            .map(([words, n]) => (
              <tr key={words}>
                <th scope="row">{words}</th>
                <td>{formatCount(n)}</td>
              </tr>
            ))}
          {n_new > 0 && (
            <tr>
              <th scope="row">{t.pairs.here}</th>
              <td>{formatCount(n_new)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}
