/** Coverage: what was seen, dumped, matched and compared, and why the rest was not. */

import { useState } from "preact/hooks";
import { go } from "./address";
import type { Coverage } from "./api";
import { useAnswer } from "./connection";
import { Glyph, Swatch } from "./glyph";
import { Name } from "./name";
import { visible } from "./names";
import { formatCount, formatShare } from "./numbers";
import type { Page } from "./page";
import { VerdictLine } from "./graph/view";
import { sideName } from "./sides";
import { slotLabel, t } from "./texts";

export function CoverageView({ page }: { page: Page }) {
  return (
    <main class="coverage-view">
      <VerdictLine page={page} />
      <div class="coverage">
        <CoverageParts />
      </div>
    </main>
  );
}

export function CoverageParts() {
  const answer = useAnswer<Coverage>("coverage");
  const coverage = answer.data;
  if (answer.error)
    return (
      <p class="trouble">
        {t.cannot_show}: {answer.error}
      </p>
    );
  if (!coverage)
    return (
      <div class="skeletons">
        <span class="skeleton" />
        <span class="skeleton" />
      </div>
    );
  return (
    <>
      <Stages coverage={coverage} />
      <Groups coverage={coverage} />
      <Lists coverage={coverage} />
    </>
  );
}

function Stages({ coverage }: { coverage: Coverage }) {
  const most = Math.max(1, ...coverage.stages.map((s) => s.n));
  return (
    <section>
      <h2>{t.stages_hint}</h2>
      <table class="stages" aria-label={t.coverage_words}>
        <tbody>
          {coverage.stages.map((stage, i) => {
            const before = coverage.stages[i - 1]?.n ?? stage.n;
            const lost = before - stage.n;
            return (
              <tr key={stage.stage}>
                <th scope="row">{t.stage[stage.stage]}</th>
                <td class="stage-bar">
                  <span class="bar">
                    <span class="fill lost" style={{ width: `${(before / most) * 100}%` }} />
                    <span class="fill kept" style={{ width: `${(stage.n / most) * 100}%` }} />
                  </span>
                </td>
                <td class="num">
                  <b>{formatCount(stage.n)}</b>
                </td>
                <td class="num dim">{formatShare(stage.n / most)}</td>
                <td class="num dim">{lost > 0 ? `−${formatCount(lost)}` : ""}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Groups({ coverage }: { coverage: Coverage }) {
  return (
    <section>
      <h2>{t.skips}</h2>
      {coverage.groups.length === 0 && <p class="dim">{t.skips_none}</p>}
      {coverage.groups.map((group, i) => (
        <Group key={i} group={group} />
      ))}
    </section>
  );
}

function Group({ group }: { group: Coverage["groups"][number] }) {
  const [is_open, setOpen] = useState(false);
  return (
    <div class="group">
      <button
        type="button"
        class="group-head"
        aria-expanded={is_open}
        onClick={() => setOpen(!is_open)}
      >
        <Glyph sign="skip" />
        <b>{visible(group.reason)}</b>
        <span>{visible(group.words)}</span>
        {(group.side === "target" || group.side === "golden") && (
          <span class="dim">
            <Swatch side={group.side} /> <bdi>{sideName(group.side)}</bdi>
          </span>
        )}
        <span class="grow" />
        <b class="num">{formatCount(group.n)}</b>
      </button>
      {is_open && (
        <ul>
          {group.examples.map((example, i) => (
            <li key={i}>
              <button
                type="button"
                class="example"
                onClick={() => go({ view: "overview", q: exampleFilter(example.op_name) })}
              >
                <Name name={example.op_name} type={example.op_type} />
              </button>
              {example.slot && <span class="dim">{slotLabel(example.slot)}</span>}
              <span class="dim">
                <bdi>{visible(example.message)}</bdi>
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function exampleFilter(name: string): string {
  return /[\s"]/.test(name) ? `name~"${name.replace(/"/g, "")}"` : `name~${name}`;
}

function Lists({ coverage }: { coverage: Coverage }) {
  return (
    <>
      {coverage.problems.length > 0 && (
        <section>
          <h2>{t.unreadable}</h2>
          {coverage.problems.map((problem, i) => (
            <p key={i} class="line">
              <Glyph sign="warn" /> <Swatch side={problem.side} />
              <span>
                <bdi>{visible(problem.message)}</bdi>
              </span>
            </p>
          ))}
        </section>
      )}
      {coverage.passed_over.length > 0 && (
        <section>
          <h2>{t.passed_over}</h2>
          {coverage.passed_over.map((item, i) => (
            <p key={i} class="line">
              <Swatch side={item.side} />
              <code>
                <bdi>{visible(item.path)}</bdi>
              </code>
              <span class="dim">
                <bdi>{visible(item.reason)}</bdi>
              </span>
            </p>
          ))}
        </section>
      )}
    </>
  );
}
