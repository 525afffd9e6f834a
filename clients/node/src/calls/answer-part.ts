import { SluiceUnavailableError } from '../errors.js';

/** @returns undefined for a text that is no JSON */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * A value in the body of an answer. Something other than Sluice may have answered, so that the value may be of any kind:
 * each reading throws a SluiceUnavailableError that names the value if it is not what it must be.
 */
export class AnswerPart {
  /** @param path of the value in the body, such as `keys[2].waiting` */
  constructor(
    private readonly value: unknown,
    private readonly status: number,
    private readonly path = '',
  ) {}

  get isMissing(): boolean {
    return this.value === undefined || this.value === null;
  }

  field(name: string): AnswerPart {
    const fields = this.#as('an object', isObject);
    const inside = this.path === '' ? name : `${this.path}.${name}`;
    return new AnswerPart(fields[name], this.status, inside);
  }

  get list(): readonly AnswerPart[] {
    const values: readonly unknown[] = this.#as('a list', Array.isArray);
    return values.map((one, i) => new AnswerPart(one, this.status, `${this.path}[${i}]`));
  }

  get text(): string {
    return this.#as('a text', (value) => typeof value === 'string');
  }

  get number(): number {
    return this.#as('a number', isSafeNumber);
  }

  get flag(): boolean {
    return this.#as('true or false', (value) => typeof value === 'boolean');
  }

  #as<Kind>(kind: string, isRight: (value: unknown) => value is Kind): Kind {
    const { value, path, status } = this;
    if (isRight(value)) return value;
    const message = `not an answer from Sluice: ${path === '' ? 'the body' : path} must be ${kind}`;
    throw new SluiceUnavailableError(message, { status, mayHaveCounted: true });
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSafeNumber(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}
