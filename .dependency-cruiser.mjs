/** Finds circles among the imports of `src`, those of types included. What may import what is in eslint.config.js. */
export default {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'parts that import each other can only be understood, tested and moved together',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    // Without this, imports of types are not seen: the compiler removes them.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};
