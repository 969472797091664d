// Numbers, times and names as people read them.

import type { Kind } from "./types";

const numbers = new Intl.NumberFormat("en");

export function count(value: number): string {
  return numbers.format(value);
}

/** "1 sample", "3 samples". */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

export function percent(value: number): string {
  const p = value * 100;
  if (p > 0 && p < 0.1) return "<0.1%";
  if (p < 10) return `${p.toFixed(1)}%`;
  // What is not certain is not shown as certain.
  return p < 100 && p >= 99.5 ? `${Math.min(99.9, p).toFixed(1)}%` : `${p.toFixed(0)}%`;
}

export function distance(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function bytes(value: number): string {
  return value >= 1e6 ? `${(value / 1048576).toFixed(1)} MB` : `${Math.max(1, Math.round(value / 1024))} kB`;
}

export function ago(at: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(at).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

export const KIND: Record<Kind, string> = { training: "trained", taught: "taught", untaught: "not taught yet" };

/** Whom a class hears, by how they are related. */
export const RELATION: Record<string, string> = {
  own: "its own samples",
  parent: "parent",
  child: "child",
  nearest: "nearest",
  further: "further relative",
  all: "mean of all classes",
};
