// The published Go clients of Kubernetes in one binary: kubectl, and exercises of client-go.
//
// One binary, because both share most of their packages: a second one would be linked, and stored,
// a second time. The first argument says which of the two runs.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// exerciseTimeout is below the time that a test may take, so that the error comes from here.
const exerciseTimeout = 40 * time.Second

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: clients kubectl ... | clients client-go EXERCISE NAMESPACE"))
	}
	program := os.Args[1]
	os.Args = os.Args[1:]
	switch program {
	case "kubectl":
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			cmdutil.CheckErr(err)
		}
	case "client-go":
		fail(runExercise(os.Args[1:]))
	default:
		fail(fmt.Errorf("unknown program %q", program))
	}
}

func runExercise(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("an exercise and a namespace are needed, not %q", arguments)
	}
	exercise, known := exercises[arguments[0]]
	if !known {
		return fmt.Errorf("unknown exercise %q", arguments[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), exerciseTimeout)
	defer cancel()
	clients, err := connect(arguments[1])
	if err != nil {
		return err
	}
	return exercise(ctx, clients)
}

// fail ends the process if there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
