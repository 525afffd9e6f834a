// Loaded into every measured server (`node --expose-gc --import`): answers IPC messages with the CPU time and the
// memory of the process.
process.on('message', ({ ask }) => {
  if (ask === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send({ cpuMicros: user + system });
  }
  if (ask === 'memory') globalThis.gc();
  if (ask.startsWith('memory')) process.send({ residentBytes: process.memoryUsage.rss() });
});
// The channel must not keep the process alive.
process.channel.unref();
