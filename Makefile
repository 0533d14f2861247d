# Short verbs, no logic: each calls one command of ffilab. `make help` lists them; those that few need are commands of ffilab
# alone (kernels, native, study, lock): `python3 ffilab/bootstrap.py --help`.
# KERNELS="3.14 3.14t" | prebuilt | pair | all   which interpreters to set up and measure
# BUDGET=smoke|room|quick|full           how long to measure (default quick)
# NAME=loaders                           the chapter of `make chapter`, `make more` and `make lab`
# FROM=folder or bundle                  make pages from these records instead of measuring
# Pass variables through the environment unexpanded.
$(foreach name,KERNELS BUDGET FROM NAME A B HOSTS LISTEN,$(eval override $(name) := $$(value $(name))))
export KERNELS BUDGET FROM NAME A B HOSTS LISTEN
# Without a shell in between, which would keep the signals that end a run for itself.
run = @exec python3 ffilab/bootstrap.py

.PHONY: help book chapter more html lab doctor compare judge pack atlas fleet ready test test-all clean
help:     ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile
	@echo; sed -n '3,6s/^# //p' Makefile
book:     ## set up what is missing, measure everything afresh, render _build/html
	$(run) book
chapter:  ## measure one chapter afresh (NAME=loaders), then render
	$(run) chapter "$$NAME"
more:     ## measure another session on top of the pages' own, of all chapters or of one (NAME=loaders)
	$(run) more "$$NAME"
html:     ## render again, measure nothing
	$(run) html
lab:      ## JupyterLab on loopback, with every interpreter, or with what one chapter needs (NAME=loaders)
	$(run) lab "$$NAME"
doctor:   ## say what is missing or noisy on this machine, and how to mend it
	$(run) doctor
compare:  ## compare two records (A=_build/records/…/calls.jsonl B=…)
	$(run) compare "$$A" "$$B"
judge:    ## print the ledger for a set of records (FROM=_build/records), without measuring
	$(run) judge "$$FROM"
# Four more, for many machines.
pack:     # what was measured here in one file to be given away: records, ledger, facts of the machine
	$(run) pack
atlas:    # one page of the packs of many machines (FROM="folder or files")
	$(run) atlas
fleet:    # measure on other machines over SSH, then make their atlas (HOSTS="user@one user@two" LISTEN=192.168.1.5)
	$(run) fleet
ready:    # for a workshop: fetch and build all, prove it without a network, write _build/room for others (who say FROM=that)
	$(run) ready
test:     ## set up the chapter pair and run the default tests
	$(run) test
test-all: ## set up the chapter pair and run the long tests
	$(run) test-all
clean:    ## remove what was built, measured and rendered here (not the cache)
	$(run) clean
