type Environment = Readonly<Record<string, string | undefined>>;

const MAX_NUMBER = 2 ** 32 - 1;

/** @throws Error if the variable is given and not a valid number */
export function numberIn(environment: Environment, name: string, otherwise: number): number {
  const given = environment[name];
  const value = given ? Number(given) : otherwise;
  if (!(value >= 0 && value <= MAX_NUMBER)) throw new Error(`${name}: got ${given!}`);
  return value;
}

/** The given seed of a run, or a random one. */
export function seedIn(environment: Environment, name: string): number {
  return numberIn(environment, name, Math.floor(Math.random() * MAX_NUMBER));
}
