package main

import (
	"context"
	"fmt"
)

// purge deletes the copies of a Site's page. It stands in for a request over HTTP.
func purge(_ context.Context, site string) error {
	fmt.Println("purged", site)
	return nil
}
