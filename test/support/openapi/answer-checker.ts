import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { oas31 } from 'zod-openapi';

/** An answer as it left the service. */
export interface SentAnswer {
  readonly method: string;
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** The body before Node cuts it off for HEAD. */
  readonly body: string;
}

/** Headers of HTTP, or described elsewhere in a document: https://spec.openapis.org/oas/v3.1.1.html#response-object */
const OF_HTTP = new Set([
  'date',
  'connection',
  'keep-alive',
  'content-length',
  'content-type',
  'transfer-encoding',
]);

/** The name of the document among the schemas. */
const DOCUMENT = 'document';

/** Compares answers with a document. */
export class AnswerChecker {
  /** The document itself is validated in test/service/http/openapi.test.ts: here it would cost each file 0.25 s. */
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(private readonly document: oas31.OpenAPIObject) {
    // The package is CommonJS, and Node's default import of it differs from its types.
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.#ajv);
    // Added once, not with each schema: every service has dozens of schemas.
    this.#ajv.addSchema(referringTo('', { components: document.components ?? {} }), DOCUMENT);
  }

  /** The flaws of an answer, by the document's description of its status. */
  flawsOf(answer: SentAnswer, described: oas31.ResponseObject | oas31.ReferenceObject): string[] {
    const response = this.#resolve(described) as oas31.ResponseObject;
    if (response['x-never-sent'] === true) return ['is said never to be sent'];
    return [...this.#flawsOfHeaders(answer, response), ...this.#flawsOfBody(answer, response)];
  }

  #flawsOfHeaders({ headers }: SentAnswer, { headers: described = {} }: oas31.ResponseObject) {
    const flaws: string[] = [];
    const known = new Set(Object.keys(described).map((name) => name.toLowerCase()));
    for (const name of headers.keys()) {
      if (!known.has(name) && !OF_HTTP.has(name)) flaws.push(`has the header ${name}`);
    }
    for (const [name, reference] of Object.entries(described)) {
      const { required, schema } = this.#resolve(reference) as oas31.HeaderObject;
      const value = headers.get(name.toLowerCase());
      if (value === undefined) {
        if (required) flaws.push(`has no header ${name}`);
      } else if (schema) flaws.push(...this.#flawsOfValue(name, schema, value));
    }
    return flaws;
  }

  #flawsOfValue(name: string, schema: object, value: string): string[] {
    const isNumber = 'type' in schema && schema.type === 'integer';
    return this.#flawsBy(schema, isNumber ? Number(value) : value).map((flaw) => `${name} ${flaw}`);
  }

  #flawsOfBody({ status, headers, body }: SentAnswer, { content = {} }: oas31.ResponseObject) {
    if (status === 304) return [];
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    const described = content[type];
    if (!described) return [`is of type ${type}`];
    if (!/^application\/(problem\+)?json$/.test(type)) return [];
    const value = JSON.parse(body) as { error?: string; code?: string };
    const flaws = described.schema ? this.#flawsBy(described.schema, value) : [];
    const { examples } = described;
    if (examples && !this.#isLikeOneOf(examples, value)) flaws.push(`says ${String(value.error)}`);
    return flaws;
  }

  /** The examples of errors have the codes and the messages of the table, with their placeholders. */
  #isLikeOneOf(
    examples: oas31.ExamplesObject,
    { error = '', code }: { error?: string; code?: string },
  ): boolean {
    return Object.values(examples).some((reference) => {
      const { value } = this.#resolve(reference) as { value: { error: string; code: string } };
      return patternOf(value.error).test(error) && value.code === code;
    });
  }

  #flawsBy(schema: object, value: unknown): string[] {
    let validate = this.#validators.get(schema);
    if (!validate) {
      validate = this.#ajv.compile(referringTo(DOCUMENT, schema));
      this.#validators.set(schema, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message = '' }) => `${instancePath} ${message}`,
    );
  }

  #resolve(described: object): object {
    if (!('$ref' in described)) return described;
    const [, ...names] = (described.$ref as string).split('/');
    return names.reduce<unknown>(
      (found, name) => (found as Record<string, unknown>)[name],
      this.document,
    ) as object;
  }
}

/** A schema with its references to components changed to the components of the schema with this name. */
function referringTo(name: string, schema: object): object {
  const text = JSON.stringify(schema);
  return JSON.parse(text.replaceAll('"#/components/', `"${name}#/components/`)) as object;
}

function patternOf(message: string): RegExp {
  const [...parts] = message
    .split(/\{\w+\}/)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
}
