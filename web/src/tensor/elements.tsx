/** The elements with the largest differences, and code that opens the tensor elsewhere. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Num, Tensor } from "../api";
import { copyText } from "../clipboard";
import { formatIndex, formatNumber, plainNumber, toFloat } from "../numbers";
import type { Page } from "../page";
import { visible } from "../names";
import { LETTERS_FEW, sideName } from "../sides";
import { t } from "../texts";

const WORST_MAX = 8;

interface WorstProps {
  page: Page;
  tensor: Tensor;
  most?: number;
}

export function WorstElements({ page, tensor, most = WORST_MAX }: WorstProps) {
  const worst = tensor.difference?.worst.slice(0, most) ?? [];
  if (worst.length === 0) return null;
  const at = page.address.at?.join(",") ?? worst[0].index.join(",");
  const is_fault = page.operator.data?.at_fault;
  return (
    <section class="part">
      <h3>
        <span>{t.worst}</span>
      </h3>
      <table class={`numbers worst ${is_fault ? "is-fault" : ""}`}>
        <thead>
          <tr>
            <th scope="col">{t.index}</th>
            <th scope="col">
              <bdi>{sideName("target", LETTERS_FEW)}</bdi>
            </th>
            <th scope="col">
              <bdi>{sideName("golden", LETTERS_FEW)}</bdi>
            </th>
            <th scope="col">{t.difference}</th>
          </tr>
        </thead>
        <tbody>
          {worst.map((element) => (
            <tr
              key={element.index.join(",")}
              class={element.index.join(",") === at ? "is-selected" : ""}
            >
              <th scope="row">
                <button
                  type="button"
                  onClick={() =>
                    go({
                      op: page.selected,
                      slot: tensor.slot,
                      at: element.index,
                      ax: null,
                    })
                  }
                >
                  <code>{formatIndex(element.index)}</code>
                </button>
              </th>
              <td title={plainNumber(element.target)}>{formatNumber(element.target)}</td>
              <td title={plainNumber(element.golden)}>{formatNumber(element.golden)}</td>
              <td class="differs" title={plainNumber(element.difference)}>
                {signed(element.difference)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function signed(value: Num): string {
  const x = toFloat(value);
  return x !== null && x > 0 && Number.isFinite(x) ? `+${formatNumber(x)}` : formatNumber(value);
}

export function CopyLines({ tensor }: { tensor: Tensor }) {
  const lines = tensor.sides.target?.lines ?? tensor.sides.golden?.lines;
  if (!lines?.opscope && !lines?.numpy) return null;
  return (
    <section class="part copy-lines">
      {lines.opscope && <CopyLine line={lines.opscope} />}
      {lines.numpy && <CopyLine line={lines.numpy} />}
    </section>
  );
}

function CopyLine({ line }: { line: string }) {
  const [is_copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(line))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="copy-line">
      <code>
        <bdi>{visible(line)}</bdi>
      </code>
      <button type="button" class="quiet" onClick={() => void copy()}>
        {is_copied ? t.copied : t.copy}
      </button>
    </div>
  );
}
