// Loaded into the replicas before their program: SIGUSR2 has them collect garbage, so that what is left
// on the heap is what they hold. Each collection is told among the lines of the log.
process.on('SIGUSR2', () => {
  globalThis.gc();
  process.stdout.write(`${JSON.stringify({ level: 'info', msg: 'garbage collected' })}\n`);
});
