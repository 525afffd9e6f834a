// Loaded into every server that is measured (`node --expose-gc --import`): tells, when asked by an
// IPC message, what CPU time and memory the process has used.
process.on('message', ({ ask }) => {
  if (ask === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send({ cpuMicros: user + system });
  }
  if (ask === 'memory') globalThis.gc();
  if (ask.startsWith('memory')) process.send({ residentBytes: process.memoryUsage.rss() });
});
// Being asked is no reason to stay alive.
process.channel.unref();
