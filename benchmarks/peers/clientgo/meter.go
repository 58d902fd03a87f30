// Measures the time of a stretch of the program, and its resident memory.

package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

type stopwatch struct {
	wall time.Time
	cpu  float64
}

func start() stopwatch {
	return stopwatch{time.Now(), processorSeconds()}
}

// stop returns the wall and CPU seconds of all threads since the start.
func (s stopwatch) stop() (wall, cpu float64) {
	return time.Since(s.wall).Seconds(), processorSeconds() - s.cpu
}

func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		exitOn(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// resident is a field of /proc/self/status in bytes: VmRSS is now, VmHWM the highest so far.
func resident(field string) int64 {
	file, err := os.Open("/proc/self/status")
	exitOn(err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var kilobytes int64
		if rest, found := strings.CutPrefix(lines.Text(), field+":"); found {
			_, err := fmt.Sscanf(rest, "%d kB", &kilobytes)
			exitOn(err)
			return kilobytes * 1024
		}
	}
	exitOn(fmt.Errorf("no %s in /proc/self/status", field))
	return 0
}
