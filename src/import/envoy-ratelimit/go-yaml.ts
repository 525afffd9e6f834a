import { type Document, isAlias, isMap, isScalar, isSeq, type Node, Scalar } from 'yaml';

/** The options of a document for {@link goValueOf}: all its scalars and names are texts. */
export const GO_YAML = { schema: 'failsafe', stringKeys: true } as const;

/** A few lines of nested aliases would expand to more than fits into memory. */
const MAX_VALUES = 500_000;
const MAX_DEPTH = 100;
const MERGE = '<<';

/** What yaml.v2 takes for something else than a text, by `resolve.go`. It removes `_` from numbers. */
const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const NUMBER = /^[-+.\d]/;
const INTEGER = /^([-+]?)(?:(0[xX][\da-fA-F]+|0[bB][01]+|0|[1-9]\d*)|0[oO]?([0-7]+))$/;
const FLOAT =
  /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|\.(?:nan|NaN|NAN)|[-+]?\.(?:inf|Inf|INF))$/;
const INTEGER_BITS = 64;

/** A number or a boolean. Where a text is expected, it is one. */
export class Unquoted {
  constructor(
    /** As the file has it. */
    readonly text: string,
    /** NaN for any number but an integer of 64 bits. */
    readonly value: number | boolean,
  ) {}
}

type Fields = Record<string, unknown>;

/**
 * The value of a document as `gopkg.in/yaml.v2` reads it for Envoy's rate limit service: what comes later in an object wins,
 * whether it is merged or not, and `rate_limit` keeps the fields that only an earlier one has, since it is a struct.
 * @param fail throws an error about a node
 */
export function goValueOf(
  document: Document,
  fail: (node: Node, problem: string) => never,
): unknown {
  let values = 0;
  /** @param into the object that takes the fields of another */
  const valueOf = (given: unknown, depth: number, into?: Fields): unknown => {
    values += 1;
    if (depth > MAX_DEPTH || values > MAX_VALUES) fail(given as Node, 'is too deep or too large');
    const node = isAlias(given)
      ? (given.resolve(document) ?? fail(given, 'must have an anchor before it'))
      : given;
    if (isScalar(node)) return scalarOf(node);
    if (isSeq(node)) return node.items.map((item) => valueOf(item, depth + 1));
    if (!isMap(node)) return null;
    // Without a prototype that a field could name.
    const fields = into ?? (Object.create(null) as Fields);
    for (const { key, value } of node.items) {
      const name = String((key as Scalar).value);
      if (name === MERGE) {
        for (const merged of isSeq(value) ? value.items.toReversed() : [value]) {
          if (valueOf(merged, depth + 1, fields) === fields) continue;
          fail(merged as Node, 'must be an object, since it is merged');
        }
        continue;
      }
      const earlier = name === 'rate_limit' ? fields[name] : undefined;
      fields[name] = valueOf(value, depth + 1, isFields(earlier) ? earlier : undefined);
    }
    return fields;
  };
  return valueOf(document.contents, 0);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === null;
}

function scalarOf({ value, type, tag }: Scalar): string | Unquoted | null {
  const text = String(value);
  if (type !== Scalar.PLAIN || tag !== undefined) return text;
  if (NULL.test(text)) return null;
  if (TRUE.test(text)) return new Unquoted(text, true);
  if (FALSE.test(text)) return new Unquoted(text, false);
  const number = NUMBER.test(text) ? numberIn(text.replaceAll('_', '')) : undefined;
  return number === undefined ? text : new Unquoted(text, number);
}

function numberIn(text: string): number | undefined {
  const [, sign, digits, octal] = INTEGER.exec(text) ?? [];
  if (sign === undefined) return FLOAT.test(text) ? NaN : undefined;
  const size = BigInt(digits ?? `0o${octal}`);
  const integer = sign === '-' ? -size : size;
  return BigInt.asIntN(INTEGER_BITS, integer) === integer ? Number(integer) : NaN;
}
