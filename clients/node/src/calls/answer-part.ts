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
    const { value, path } = this;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw this.#mustBe('an object');
    }
    const inside = path === '' ? name : `${path}.${name}`;
    return new AnswerPart((value as Record<string, unknown>)[name], this.status, inside);
  }

  get list(): readonly AnswerPart[] {
    const { value } = this;
    if (!Array.isArray(value)) throw this.#mustBe('a list');
    return value.map((one, i) => new AnswerPart(one, this.status, `${this.path}[${i}]`));
  }

  get text(): string {
    const { value } = this;
    if (typeof value !== 'string') throw this.#mustBe('a text');
    return value;
  }

  get number(): number {
    const { value } = this;
    if (typeof value !== 'number' || Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      throw this.#mustBe('a number');
    }
    return value;
  }

  get flag(): boolean {
    const { value } = this;
    if (typeof value !== 'boolean') throw this.#mustBe('true or false');
    return value;
  }

  #mustBe(kind: string): SluiceUnavailableError {
    const name = this.path === '' ? 'the body' : this.path;
    const message = `not an answer from Sluice: ${name} must be ${kind}`;
    return new SluiceUnavailableError(message, { status: this.status, mayHaveCounted: true });
  }
}
