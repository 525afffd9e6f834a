/** A query's condition on one label. */
export interface LabelMatcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** A metric in a query, and its conditions. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly LabelMatcher[];
}

const SELECTOR = /\b((?:ratelimit|nodejs|process)_\w+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(=~|!~|!=|=)"([^"]*)"/g;
const GROUPING = /\bby \(([^)]*)\)/g;

/** The metrics of a query. */
export function selectorsIn(expr: string): Selector[] {
  return [...expr.matchAll(SELECTOR)].map(([, metric = '', matchers = '']) => ({
    metric,
    matchers: [...matchers.matchAll(MATCHER)].map(([, label = '', operator = '', value = '']) => ({
      label,
      operator,
      value,
    })),
  }));
}

/** The labels by which a query groups. */
export function groupingsIn(expr: string): string[] {
  return [...expr.matchAll(GROUPING)].flatMap(([, labels = '']) => labels.split(/,\s*/));
}
