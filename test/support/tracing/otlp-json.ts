/** Spans in OTLP's JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
interface OtlpAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: number };
}

export interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export const KIND = { internal: 1, server: 2, client: 3 } as const;
export const STATUS = { unset: 0, error: 2 } as const;

/** A span that a collector has received. */
export interface ReceivedSpan extends Pick<
  OtlpSpan,
  'traceId' | 'spanId' | 'parentSpanId' | 'traceState' | 'name' | 'kind'
> {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  /** The ids of linked spans. */
  readonly links: readonly string[];
  readonly status: number;
  readonly millis: number;
}

export function spansIn({ resourceSpans }: OtlpBody): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...span,
        attributes: recordOf(span.attributes),
        resource: recordOf(resource.attributes),
        events: span.events.map(({ name }) => name),
        links: span.links.map(({ spanId }) => spanId),
        status: span.status.code,
        millis: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
      })),
  );
}

function recordOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
