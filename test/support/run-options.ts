type Environment = Readonly<Record<string, string | undefined>>;

const MAX_NUMBER = 2 ** 32 - 1;

/** @throws Error where the variable is given and no number that makes sense */
export function numberIn(environment: Environment, name: string, otherwise: number): number {
  const given = environment[name];
  const value = given ? Number(given) : otherwise;
  if (!(value >= 0 && value <= MAX_NUMBER)) throw new Error(`${name}: got ${given!}`);
  return value;
}

/** The seed that a run is asked for; drawn where none is. */
export function seedIn(environment: Environment, name: string): number {
  return numberIn(environment, name, Math.floor(Math.random() * MAX_NUMBER));
}
