#!/bin/bash
set -e
cp /solution/cronnext.py /app/cronnext.py
