"""The AWS resources of the service, and the programs that package, deploy and remove them."""
