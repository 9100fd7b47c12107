/** The root component: language, theme, selection and the current view. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { go, scopedFilter, useAddress, type Address, type Theme } from "./address";
import type { Info, Operator, Operators } from "./api";
import { Banner } from "./banner";
import { THEME_EVENT } from "./canvas";
import { ask, embedded, is_report, recoveries, useAnswer, useHealth } from "./connection";
import { CoverageView } from "./coverage";
import { EventsView } from "./events/view";
import { GraphView } from "./graph/view";
import { useKeys } from "./keys";
import { KeysDialog } from "./keys-dialog";
import { usePrinting } from "./media";
import { plainName } from "./name";
import { setCommonPrefix } from "./names";
import { Overview } from "./overview/view";
import { defaultSlot, type Page } from "./page";
import { Palette } from "./palette";
import { causeWord } from "./page";
import { formatNumber } from "./numbers";
import { ReportBar } from "./report/bar";
import { ReportView } from "./report/view";
import { selectByKey } from "./selection";
import { setSides } from "./sides";
import { StepsView } from "./steps/view";
import { TensorView } from "./tensor/view";
import { preferredLanguage, setLanguage, t } from "./texts";
import { TabBar, TopBar } from "./topbar";

export function App() {
  const address = useAddress();
  const language = address.lang ?? preferredLanguage();
  const is_printing = usePrinting();
  const theme = useTheme(is_printing ? "light" : address.theme);
  setLanguage(language);
  useLayoutEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  useHealth();
  return (
    <Shell
      key={`${language} ${recoveries}`}
      address={address}
      theme={theme}
      is_printing={is_printing}
    />
  );
}

type Dialog = "palette" | "keys" | null;

interface ShellProps {
  address: Address;
  theme: Theme;
  is_printing: boolean;
}

function Shell({ address, theme, is_printing }: ShellProps) {
  const info = useAnswer<Info>("info");
  const [dialog, setDialog] = useState<Dialog>(null);
  useOpeningKeys(setDialog);
  if (!info.data) {
    return (
      <div class="shell">
        <TopBar info={null} address={address} theme={theme} onSearch={() => undefined} />
        <Banner />
        <main class="centred" aria-busy={info.error === null}>
          {info.error ? (
            <p class="trouble">
              {t.cannot_show}: {info.error}
            </p>
          ) : (
            <FirstSkeleton />
          )}
        </main>
      </div>
    );
  }
  return (
    <Loaded
      info={info.data}
      address={address}
      theme={theme}
      is_printing={is_printing}
      dialog={dialog}
      onDialog={setDialog}
    />
  );
}

interface LoadedProps extends ShellProps {
  info: Info;
  dialog: Dialog;
  onDialog: (dialog: Dialog) => void;
}

function Loaded({ info, address, theme, is_printing, dialog, onDialog }: LoadedProps) {
  // Set while rendering, because captions and names in this pass already use them.
  setSides(info);
  setCommonPrefix(info.prefix);
  useNamedOperator(address.name);
  const is_there = address.op !== null && address.op < info.n_operators;
  const fallback = info.verdict.op ?? (info.n_operators > 0 ? 0 : null);
  const selected = is_there ? address.op : fallback;
  const operator = useAnswer<Operator>(selected === null ? null : `operator/${selected}`);
  const slots = operator.data?.slots ?? [];
  const slot =
    slots.find((s) => s.id === address.slot) ??
    (operator.data ? defaultSlot(info, operator.data) : null);
  const page: Page = { info, address, selected, operator, slot };
  useKeys((key) => selectByKey(page, key));
  useEffect(() => {
    document.title = info.golden
      ? `${info.target.name} ${t.against} ${info.golden.name} · Opscope`
      : `${info.target.name} · Opscope`;
  }, [info]);
  const not_there = address.op !== null && !is_there ? address.op : null;
  const Bar = is_report ? ReportBar : TopBar;
  return (
    <div class={is_report ? "shell is-report" : "shell"}>
      <Bar info={info} address={address} theme={theme} onSearch={() => onDialog("palette")} />
      <Banner missing={not_there === null ? null : t.no_such_operator(not_there)} />
      <LeftOut info={info} />
      <View page={page} is_printing={is_printing} />
      {!is_report && <TabBar info={info} address={address} />}
      <Spoken page={page} />
      {dialog === "palette" && (
        <Palette page={page} onClose={() => onDialog(null)} onKeys={() => onDialog("keys")} />
      )}
      {dialog === "keys" && <KeysDialog onClose={() => onDialog(null)} />}
    </div>
  );
}

/** What a report lacks compared with a served page. */
function LeftOut({ info }: { info: Info }) {
  const n = embedded?.rows.length ?? info.n_operators;
  if (n === info.n_operators) return null;
  return (
    <div class="banner" role="note">
      <span>{t.report_left_out(n, info.n_operators)}</span>
    </div>
  );
}

function View({ page, is_printing }: { page: Page; is_printing: boolean }) {
  switch (page.address.view) {
    case "overview":
      return is_report ? (
        <ReportView page={page} is_printing={is_printing} />
      ) : (
        <Overview page={page} />
      );
    case "graph":
      return <GraphView page={page} />;
    case "tensor":
      return <TensorView page={page} />;
    case "steps":
      return <StepsView page={page} />;
    case "events":
      return <EventsView page={page} />;
    case "coverage":
      return <CoverageView page={page} />;
    default:
      return (
        <main class="centred">
          <p>{t.not_built}</p>
        </main>
      );
  }
}

/** Announces each selection to screen readers. */
function Spoken({ page }: { page: Page }) {
  const operator = page.operator.data;
  if (!operator) return <div class="spoken" aria-live="polite" />;
  const cause = causeWord(operator);
  const has_steps = new Set(page.info.places.map((place) => place.step)).size > 1;
  const words = [
    operator.id,
    plainName(operator),
    has_steps && operator.step !== null ? t.step(operator.step) : null,
    operator.at_fault ? t.at_fault : t.status[operator.status],
    cause ? t.cause[cause] : null,
    page.info.golden ? formatNumber(operator.error) : formatNumber(operator.max_abs),
  ];
  return (
    <div class="spoken" aria-live="polite">
      {words.filter((w) => w !== null).join(", ")}
    </div>
  );
}

function FirstSkeleton() {
  return (
    <div class="skeletons" role="status" aria-label={t.loading}>
      {[62, 48, 70, 55, 40].map((width) => (
        <span class="skeleton" style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}

function useOpeningKeys(setDialog: (dialog: Dialog) => void): void {
  useLayoutEffect(() => {
    const open = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setDialog("palette");
      }
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  useKeys((key) => {
    if (key !== "?") return false;
    setDialog("keys");
    return true;
  });
}

/** Accepts `name=` in the address, and replaces it by the id of the operator of that name. */
function useNamedOperator(name: string | null): void {
  useEffect(() => {
    if (name === null) return;
    const filter = scopedFilter(
      { step: null, rank: null } as Address,
      `name~"${name.replace(/"/g, "")}"`,
    );
    ask<Operators>(`operators?q=${encodeURIComponent(filter)}&sort=order&offset=0&limit=200`).then(
      ({ rows }) => {
        const found = rows.find((row) => row.op_name === name) ?? rows[0];
        go(found ? { op: found.id, name: null } : { name: null });
      },
      () => undefined,
    );
  }, [name]);
}

function useTheme(chosen: Theme | null): Theme {
  const [system, setSystem] = useState<Theme>(() => (wish.matches ? "dark" : "light"));
  useEffect(() => {
    const follow = () => setSystem(wish.matches ? "dark" : "light");
    wish.addEventListener("change", follow);
    return () => wish.removeEventListener("change", follow);
  }, []);
  const theme = chosen ?? system;
  // Set while rendering, because drawing in this pass must already use the new colours.
  if (document.documentElement.dataset.theme !== theme) {
    document.documentElement.dataset.theme = theme;
    queueMicrotask(() => dispatchEvent(new Event(THEME_EVENT)));
  }
  return theme;
}

const wish = matchMedia("(prefers-color-scheme: dark)");
