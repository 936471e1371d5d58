// Numbers and times as people read them.
import type { Status } from "./server";

export function span(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 >= 1 ? ` ${Math.floor(s % 60)} s` : ""}`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** A time of the head's clock as a date here. */
export function when(t: number, status: Status | null): string {
  if (!status) return "";
  const { born_unix_s, time_scale } = status.clock;
  const date = new Date((born_unix_s + t / (time_scale || 1)) * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en-GB", isToday ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

/** How long ago or ahead. */
export function away(t: number, now: number): string {
  if (Math.abs(t - now) < 1) return "now";
  return t < now ? `${span(now - t)} ago` : `in ${span(t - now)}`;
}

/** From when to when something is expected. */
export function between(of: { low_s: number; high_s: number | null }, now: number): string {
  const low = span(Math.max(0, of.low_s - now));
  return of.high_s === null ? `${low} or much later` : `${low} to ${span(Math.max(0, of.high_s - now))}`;
}

export function count(n: number): string {
  return Math.round(n).toLocaleString("en");
}

export function short(n: number): string {
  return Math.abs(n) >= 1000 ? count(n) : String(Number(n.toPrecision(3)));
}

export function gibibytes(bytes: number): string {
  return `${short(bytes / 2 ** 30)} GiB`;
}

export function plural(n: number, one: string): string {
  return `${count(n)} ${one}${n === 1 ? "" : "s"}`;
}
