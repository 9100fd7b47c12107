/** More facts about an operator: its match, differing attributes, and its source. */

import type { Operator } from "../api";
import { Glyph, Swatch } from "../glyph";
import { Name } from "../name";
import { visible } from "../names";
import { t } from "../texts";

interface OperatorFactsProps {
  operator: Operator;
  /** Whether the pair is already shown. */
  has_partners?: boolean;
}

export function OperatorFacts({ operator, has_partners = false }: OperatorFactsProps) {
  const differing = operator.attributes.filter((a) => a.target !== a.golden && a.golden !== null);
  const shown = differing.length > 0 ? differing : operator.attributes.slice(0, 8);
  const users = operator.source.filter((frame) => frame.is_user);
  const others = operator.source.filter((frame) => !frame.is_user);
  return (
    <>
      {!has_partners && operator.golden.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.pair}</span>
          </h3>
          {operator.golden.map((partner, i) => (
            <p key={i}>
              <Swatch side="golden" /> <Name name={partner.op_name} type={partner.op_type} />
            </p>
          ))}
          {operator.how && <p class="dim">{operator.how}</p>}
        </section>
      )}
      {operator.suspects.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.suspects}</span>
          </h3>
          {operator.suspects.slice(0, 8).map((suspect, i) => (
            <p key={i}>
              <Glyph sign="skip" /> <Name name={suspect.op_name} type={suspect.op_type} />
              <span class="dim"> {suspect.reason}</span>
            </p>
          ))}
        </section>
      )}
      {shown.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.attributes}</span>
          </h3>
          <dl class="metrics">
            {shown.map((a) => (
              <div key={a.name}>
                <dt>
                  <bdi>{visible(a.name)}</bdi>
                </dt>
                <dd>
                  <bdi>{visible(a.target ?? "–")}</bdi>
                  {a.golden !== null && a.golden !== a.target && (
                    <b class="bad">
                      {" "}
                      ≠ <bdi>{visible(a.golden)}</bdi>
                    </b>
                  )}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {operator.source.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.source}</span>
          </h3>
          {users.map((frame, i) => (
            <p key={i}>
              <code>
                <bdi>{visible(frame.text)}</bdi>
              </code>
            </p>
          ))}
          {others.length > 0 && (
            <details>
              <summary>{t.other_frames(others.length)}</summary>
              {others.map((frame, i) => (
                <p key={i}>
                  <code>
                    <bdi>{visible(frame.text)}</bdi>
                  </code>
                </p>
              ))}
            </details>
          )}
        </section>
      )}
    </>
  );
}
