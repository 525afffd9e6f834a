import { readFileSync } from 'node:fs';

import { parse } from 'yaml';

import { startTestApp } from '../support/app.js';
import { scrape } from '../support/prometheus-text.js';

interface Rules {
  readonly spec: {
    readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[];
  };
}

/** A metric, with the one label that an expression asks for, or leaves out. */
const SELECTOR = /\b((?:ratelimit|nodejs|process)_\w+)(?:\{(\w+)!?="(\w+)"\})?/g;

test('every alert asks for series that there are', async () => {
  const file = new URL('../../k8s/components/monitoring/prometheusrule.yaml', import.meta.url);
  const { spec } = parse(readFileSync(file, 'utf8')) as Rules;
  const expressions = spec.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
  const asked = expressions.flatMap((text) => [...text.matchAll(SELECTOR)]);
  expect(expressions.length).toBeGreaterThan(0);
  expect(asked.length).toBeGreaterThanOrEqual(expressions.length);

  const app = await startTestApp({});
  const { series } = await scrape(app.url);
  await app.stop(0);
  const isThere = ([, name, label, value]: RegExpExecArray): boolean =>
    series.some((one) => one.name === name && (!label || one.labels[label] === value));
  const missing = asked.filter((selector) => !isThere(selector));
  expect(missing.map(([selector]) => selector)).toEqual([]);
});
