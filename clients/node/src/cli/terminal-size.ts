interface Sized {
  readonly columns: number;
  readonly rows: number;
}

/** The size of a terminal. Some do not say theirs. */
export function sizeOf({ columns, rows }: Sized): Sized {
  return { columns: columns || 80, rows: rows || 24 };
}
