// Loaded into the replicas before their program: SIGUSR2 has them collect garbage, so that what is left
// on the heap is what they hold.
process.on('SIGUSR2', () => {
  globalThis.gc();
});
