/** A component that re-renders only when one of its props changes. */

import { Component, h, type FunctionComponent } from "preact";

export function memo<P extends object>(Inner: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys(after).some((key) => after[key] !== before[key]);
    }
    render(props: Readonly<P>) {
      return h(Inner, props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
