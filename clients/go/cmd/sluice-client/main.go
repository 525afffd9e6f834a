// Command sluice-client takes slots of Sluice in a shell, a cron job or a CI job. docs/command-line.md is its reference.
package main

import (
	"errors"
	"os"
)

const (
	program = "sluice-client"
	// version is the version of all packages of Sluice's clients.
	version = "0.1.0"
)

func main() {
	keepOnBrokenPipes()
	os.Exit(carryOut(os.Args[1:]))
}

// carryOut carries out a command line. It returns the exit code.
func carryOut(args []string) int {
	asked, err := parse(args)
	code := 0
	if err == nil {
		code, err = do(asked)
	}
	var isWrong commandLineError
	switch {
	case errors.As(err, &isWrong):
		writeLine(program + ": " + err.Error() + "; see " + program + " --help")
		return exitUsage
	case err != nil:
		failed := failureOf(err, nil)
		writeLine(program + ": " + failed.text)
		return failed.exitCode
	}
	return code
}

func do(asked invocation) (int, error) {
	switch {
	case asked.asksHelp:
		return 0, print(helpText(asked.command)...)
	case asked.asksVersion:
		return 0, print(version)
	}
	return asked.command.do(asked)
}
