# Short verbs, no logic: each calls one command of ffilab. `make help` lists them.
# KERNELS="3.14 3.14t" | pair | all      which interpreters to set up and measure
# BUDGET=smoke|room|quick|full           how long to measure (default quick)
# NAME=loaders                           the chapter of `make chapter` and `make exercise`
# FROM=folder or bundle                  make pages from these records instead of measuring
# As they were given, `$$` and quotes included, through the environment: the shell reads none of it.
$(foreach name,KERNELS BUDGET FROM NAME A B,$(eval override $(name) := $$(value $(name))))
export KERNELS BUDGET FROM NAME A B
# Without a shell in between, which would keep the signals that end a run for itself.
run = @exec python3 ffilab/bootstrap.py

.PHONY: help book test check doctor kernels native chapter exercise more bench coverage compare judge characteristics html slides pdf links lab clean distclean
help:     ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile
	@echo; sed -n '2,5s/^# //p' Makefile
book:     ## set up what is missing, measure everything afresh, render _build/html
	$(run) book
test:     ## set up the chapter pair and run the tests: what needs no measuring first
	$(run) test
check:    ## the fast half of the tests: all that needs no measuring
	$(run) check
doctor:   ## say what is missing or noisy on this machine, and how to mend it
	$(run) doctor
kernels:  ## set up the interpreters and their Jupyter kernels
	$(run) kernels
native:   ## build everything under native/
	$(run) native
chapter:  ## measure one chapter afresh (NAME=loaders), then render
	$(run) chapter "$$NAME"
exercise: ## check your answers to a chapter's exercises, my/<chapter>.py (NAME=loaders; made on first use)
	$(run) exercise "$$NAME"
more:     ## measure another session on top of the pages' own, of all chapters or of one (NAME=loaders)
	$(run) more "$$NAME"
bench:    ## our instrument against pyperf, about 25 minutes (BUDGET=full: an hour)
	$(run) study notebooks.measuring.contest
coverage: ## how intervals hold for the next build: twelve sessions on three builds (twenty minutes and more; book/evidence)
	$(run) study notebooks.measuring.levels
compare:  ## compare two records (A=_build/records/…jsonl B=…)
	$(run) compare "$$A" "$$B"
judge:    ## print the ledger for a set of records (FROM=_build/records), without measuring
	$(run) judge "$$FROM"
characteristics: ## simulate what the ledger's rules say where the truth is known (half an hour; book/evidence)
	$(run) characteristics
html:     ## render again, measure nothing
	$(run) html
slides:   ## make the slides of the chapters as they were last measured, _build/html/slides (a part of every rendering)
	$(run) slides
pdf:      ## print the rendered book to one PDF, by Chromium
	$(run) pdf
links:    ## try every address that leads out of the book, over the network
	$(run) links
lab:      ## JupyterLab on loopback, with every kernel
	$(run) lab
clean:    ## remove what was built, measured and rendered here (not the cache)
	$(run) clean
distclean: ## clean, and remove the environments too
	$(run) distclean
