/** A number with its noun. */

import { formatCount } from "../numbers";

export const many = (n: number, one: string, more: string) =>
  `${formatCount(n)} ${n === 1 ? one : more}`;
