import type { OutgoingHttpHeaders } from 'node:http';

import { send } from './http-client.js';

/** A value with its name and labels. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The result of a scrape by Prometheus. */
export class Scrape {
  constructor(readonly series: readonly Series[]) {}

  /** The value of the one series with exactly these labels. Throws if there is none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const wanted = seriesName({ name, labels });
    const found = this.series.filter((series) => seriesName(series) === wanted);
    if (found.length !== 1) throw new Error(`${found.length} series are ${wanted}`);
    return found[0]!.value;
  }

  /** Every series whose name has this start, in the form of a query, and its value. */
  valuesOf(prefix: string): Record<string, number> {
    const matching = this.series.filter(({ name }) => name.startsWith(prefix));
    return Object.fromEntries(matching.map((series) => [seriesName(series), series.value]));
  }
}

export async function scrape(url: string, headers: OutgoingHttpHeaders = {}): Promise<Scrape> {
  const { status, text } = await send(url, 'GET', '/metrics', headers);
  if (status !== 200) throw new Error(`no metrics: ${status} ${text}`);
  return parsePrometheusText(text);
}

/**
 * Reads the text format, and throws at an invalid line.
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
export function parsePrometheusText(text: string): Scrape {
  const lines = text.split('\n').filter((line) => line !== '' && !/^# (HELP|TYPE) /.test(line));
  return new Scrape(lines.map(parseLine));
}

const SERIES_LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\+Inf|Nan|[-+.e\d]+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/y;

function parseLine(line: string): Series {
  const [, name, labels = '', value] = SERIES_LINE.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a line of metrics: ${line}`);
  return { name, labels: parseLabels(labels), value: Number(value!.replace('+Inf', 'Infinity')) };
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined) throw new Error(`not labels of metrics: ${text}`);
    labels[name] = value!;
  }
  return labels;
}

function seriesName({ name, labels }: Omit<Series, 'value'>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.sort().join()}}`;
}
