// GoCC (github.com/GiGurra/gocc): Go, in memory, one process. Its requests are Sluice's.

/** It answers an approval with a number, and a denial with an empty body. */
export const asking = {
  path: '/rate/KEY',
  approved: { text: '' },
  refused: { text: '', length: 0 },
};

export const programs = {
  gocc: {
    launch: ({ port, limit }) => ({
      arguments: ['-s', 'echo', '-p', port, '-m', limit, '-w', 1000, '--log-level', 'WARN'],
      environment: { GOMAXPROCS: '1' },
    }),
  },
};

/** It has no option that prints its version. */
export const version = 'checkout';
