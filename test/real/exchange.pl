# Exchanges two names for ever, as a container that has the volume could: renameat2(2) with RENAME_EXCHANGE.
# Arguments: the number of the system call, and pairs of paths. Ends with its standard input.
use strict;
my ($call, @paths) = @ARGV;
my $AT_FDCWD = -100;
my $EXCHANGE = 2;
syscall($call, $AT_FDCWD, $paths[0], $AT_FDCWD, $paths[1], $EXCHANGE) == 0 or die "renameat2: $!\n";
syswrite(STDOUT, "ready\n");
while (1) {
  for (1 .. 10_000) {
    for (my $pair = 0; $pair < @paths; $pair += 2) {
      syscall($call, $AT_FDCWD, $paths[$pair], $AT_FDCWD, $paths[$pair + 1], $EXCHANGE);
    }
  }
  exit 0 if getppid() == 1;
}
