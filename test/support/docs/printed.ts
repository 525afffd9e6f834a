const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The parts of an output that differ between runs and machines. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [UUID, '<id>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/^Date: .*$/gm, 'Date: <time>'],
  [/\b(Retry-After|X-Correlation-ID): \S+/g, '$1: <varies>'],
  [/"(responseTime|remotePort)":\d+/g, '"$1":<number>'],
  [/curl\/[\d.]+/g, 'curl/<version>'],
  [/[\w.-]+-[0-9a-f]{8}(?=["#\n]|$)/g, '<replica>'],
  [/\d+\.\d+/g, '<decimal>'],
  [/\d{10,}/g, '<number>'],
];

/** An output without the parts that differ between runs. */
export function withoutVarying(text: string): string {
  return VARYING.reduce(
    (rest, [pattern, name]) => rest.replaceAll(pattern, name),
    text.replaceAll('\r', '').trim(),
  );
}

/** The request ids in a text, in their order. */
export function idsIn(text: string): string[] {
  return text.match(UUID) ?? [];
}
